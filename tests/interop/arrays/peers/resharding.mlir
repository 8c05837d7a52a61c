// What a compiler pass of Shardy's kind must emit, in the form of its tests.
sdy.mesh @mesh = <["x"=4, "y"=2]>
sdy.mesh @reversed = <["x"=4, "y"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
sdy.mesh @six = <["x"=6]>
sdy.mesh @none = <[]>

// CHECK-LABEL: func @sub_axes
func.func @sub_axes(%arg0 : tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<16x8xf32> {
  // CHECK-NEXT: %[[PERMUTE:.*]] = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"x":(1)2, "y", "x":(2)2}, {}]>
  // CHECK-NEXT: %[[A2A:.*]] = sdy.all_to_all [{"x":(2)2}: 0->1] %[[PERMUTE]] out_sharding=<@mesh, [{"x":(1)2, "y"}, {"x":(2)2}]>
  // CHECK-NEXT: %[[GATHER:.*]] = sdy.all_gather [{"y"}, {}] %[[A2A]] out_sharding=<@mesh, [{"x":(1)2}, {"x":(2)2}]
  %0 = sdy.reshard %arg0 <@mesh, [{"x":(1)2}, {"x":(2)2}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// CHECK-LABEL: func @other_order
func.func @other_order(%arg0 : tensor<16x8xbf16> {sdy.sharding=#sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>}) -> tensor<16x8xbf16> {
  // CHECK-NEXT: %[[PERMUTE:.*]] = sdy.collective_permute %arg0 out_sharding=<@reversed, [{"x"}, {}], unreduced={"y"}>
  %0 = sdy.reshard %arg0 <@reversed, [{"x"}, {}], unreduced={"y"}> : tensor<16x8xbf16>
  return %0 : tensor<16x8xbf16>
}

// CHECK-LABEL: func @from_replicated
func.func @from_replicated(%arg0 : tensor<16x8xf32>) -> tensor<16x8xf32> {
  // CHECK-NEXT: sdy.all_slice [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {"y"}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// LABEL: func @not_supported
// func.func @not_supported(%arg0 : tensor<6x2xf32> {sdy.sharding=#sdy.sharding<@six, [{"x":(1)2}, {}]>}) -> tensor<6x2xf32> {
//   NEXT: %[[GATHER:.*]] = sdy.all_gather [{"x":(1)2}, {}] %arg0 out_sharding=<@six, [{}, {}]>
// }

// CHECK-LABEL: func @nothing_to_do
func.func @nothing_to_do(%arg0 : tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x8xf32> {
  // CHECK-NEXT: return %arg0
  %0 = sdy.reshard %arg0 <@mesh, [{"x", ?}, {?}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// CHECK-LABEL: func @kept
func.func @kept(%arg0 : tensor<24x8xf32> {sdy.sharding = #sdy.sharding<@six, [{"x"}, {}]>}) -> tensor<24x8xf32> {
  // CHECK-NEXT: %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<24x8xf32>
  return %0 : tensor<24x8xf32>
}

// CHECK-LABEL: func @wrong_end
func.func @wrong_end(%arg0 : tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<16x8xf32> {
  // CHECK-NEXT: sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {"y"}]>
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// CHECK-LABEL: func @empty_mesh
func.func @empty_mesh(%arg0 : tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@none, [{}, {}]>}) -> tensor<16x8xf32> {
  %0 = sdy.reshard %arg0 <@none, [{}, {}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
